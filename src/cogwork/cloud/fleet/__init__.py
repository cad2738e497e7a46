"""AppService: the operations of people and programs that manage machines."""
