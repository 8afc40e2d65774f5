"""fleetctl: the fleet from a shell. It talks HTTP and knows neither Django nor the database."""
