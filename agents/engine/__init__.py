"""How a run is put together and carried out: pure, handed what it needs."""
