"""Sessions in other forms: Markdown, HTML, JSON, ATIF."""
