"""The project's own load: what the bot adds to a message, beside a bare floor measured in the same minute.

Reading order: `model` (what answers), `driver` (who asks), `floor` and `unjournaled` (what the bot is compared with),
`subject` (a bot as a process), `trial` (one measurement of one), `report` (medians and ratios), `micro` (single parts),
`__main__` (all of it, interleaved). Figures of one machine mean little; ratios of one run mean something.
"""
