"""AppService: operations for people and programs that manage machines."""
