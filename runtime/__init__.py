"""The engine: the loop and the context, headless; no screen, no SDK. Imports tools and transcripts only."""
