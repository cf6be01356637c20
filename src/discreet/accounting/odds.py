"""The former name of `discreet.odds`, kept for those who import it."""

from discreet.odds import best_guess, best_guess_of_budget

__all__ = ["best_guess", "best_guess_of_budget"]
