"""The kill test: the service dies at seeded moments, is started again, and both ends' records are compared.

Reading order: `crossings` (where a service can die), `victim` (the process that does), `processes` (starting and
following it), `model` (what it is answered), `stage` (who says what to it), `moments` (which deaths, and what else goes
wrong), `troubles` (what becomes of the journal meanwhile), `keepsakes` (facts, summaries, personas, people who want to
be forgotten), `drafting` (a group in which it is a shadow), `servers` (what real servers do: refuse, number anew, go
deaf, recall, confirm late), `evidence`, `journal`, `oracle` and `kept` (what must hold afterwards; `test_oracle`,
`test_kept`, `test_drafting` and `test_servers` plant what they must notice), `trial` (one moment, all of it), `series`
(many), `report` and `__main__`.
"""
