from .feature_table import FeatureTable

__all__ = ["FeatureTable"]
