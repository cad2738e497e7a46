"""Installation and removal of the agent."""
