"""REST, a file for each subject: a request is read, a part of the service asked, its answer shown.

Every route says who may use it (`guard`), and every failure is a problem document (`..problems`).
"""
