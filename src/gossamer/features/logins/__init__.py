"""Logins: cookies and logins of a crawl.

Takes    cookies in replies and files, rules of logins, their secrets, pages with forms
Gives    headers with cookies, requests that log in, verdicts on links that would log out
Keeps    a jar and a login for each session, in memory and in the store
Imports  engine, fetch, model, options, ports, process, state, url
Touches  files of cookies, reading
Never    sends a password to a site that its rule does not name
"""
