"""Continual release: declared streams of counts, running totals and windows over days, at one price for all."""
