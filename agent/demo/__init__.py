"""The product shown: a real task with a real model, and a recorded tour."""
