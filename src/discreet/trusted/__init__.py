"""What privacy rests on, and nothing else: see the README beside this file."""
