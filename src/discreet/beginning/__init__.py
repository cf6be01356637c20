"""A form in a browser for a first declaration, for owners who do not write one by hand: `discreet init --browser`."""
