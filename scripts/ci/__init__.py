"""What `.ci/run` runs tests with: second tries, counts and the report at its end."""
