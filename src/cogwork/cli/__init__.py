"""`cogwork`: commands for people who configure and operate machines.

`commands.py` lists the commands, declared as tables in `parsers`; each names the function that runs
it, which is imported when it is needed. `client` connects to machines over HTTP and gRPC, also to
servers other than Cogwork's. `fleet` is a client of the cloud's public API, and imports nothing of
`cogwork.cloud`.

To add a command:

1. Declare it in the table of its group in `parsers`, with the name of its function.
2. Write the function in the folder of the group. It takes the parsed arguments, raises CommandError
   for a mistake of the user, and returns an exit code of `exit_codes.py`. `terminal.py` prints.
3. Test it through `cli.main.main` in `tests/unit/cli`, and show it in a guide of `docs/guides`.
4. Run `make docs` for the reference. Man pages and completion follow from the table.
"""
