"""Authentication and authorization: credentials, tokens and roles."""
