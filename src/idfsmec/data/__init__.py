"""Where recordings come from: manifests, BIDS trees, named data sets, simulation."""
