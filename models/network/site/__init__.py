"""The judge of the detector at real sites: splits, measures, rivals, poisoning and alerts."""
