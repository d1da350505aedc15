"""Why a job starts or waits, what nodes cost, what would change it, reports and comparisons."""
