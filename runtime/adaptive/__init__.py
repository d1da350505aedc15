"""Applications that an iScheduler senses and actuates: the API, Prophet's costs, a live scheduler."""
