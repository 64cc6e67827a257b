"""The context: an append-only history, recorded folds, and the view that is projected from both."""
