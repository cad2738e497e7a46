"""Who a client is and what it may call: credentials, tokens and roles."""
