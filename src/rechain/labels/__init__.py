"""What people say of candidate chains: kept in one SQLite file, compared, decided, exported. No web, no network."""
