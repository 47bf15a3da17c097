"""farline measures, explains and moves bulk data over long fat networks.

The rooms, from the command line down (each opens with what it does):
`cli`, `campaign`, `plots`, `explain`, `profiles`, `store`, `tools`, `spec`,
`errors`. Rust, below `_native`, moves the bytes and keeps the time.

As a library, start with `farline.campaign.measure.measure` for one run and
`farline.store.Store` for what earlier runs were.
"""
