"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""
