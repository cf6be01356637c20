"""Spark: its dialect, how it reads sources, its process. Outside it is named in `discreet.engines.chosen` alone."""
