"""No trusted curator: each respondent's answer is randomised before it leaves the device."""

from discreet.local.answers import Choice, Number, Ordered, Text
from discreet.local.client import Client
from discreet.local.collection import Collection
from discreet.local.collector import Collector
from discreet.local.report import Report

__all__ = ["Choice", "Client", "Collection", "Collector", "Number", "Ordered", "Report", "Text"]
