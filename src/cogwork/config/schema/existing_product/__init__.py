"""The differences between configurations of viam-server and ours.

Each row names one setting or model of viam-server that is not taken over, with the reason and with
what to do instead. The check reports the rows that a file uses, `cogwork config migrate` applies
their fixes, and the page "Coming from viam-server" lists all of them.
"""
