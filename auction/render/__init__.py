"""Text and pictures of schedules, plans, explanations and comparisons."""
