"""What storage can do: reads and writes measured over their settings, as a job.

What it does: plans settings (`settings`), makes and removes files of its own (`files`), has
processes read and write side by side (`workers`), measures what was in the page cache, fits the
caps of one process and of all (`models.storage_caps`), reads how the file system spreads files
(`striping`), and keeps it all as a profile in the store (`store.file_systems`).

What it must not do: touch a file that it has not made, but to read it on request; leave anything
behind; take what the cache gives for what a disk gives.

In: a `StorageRequest`. Out: events, and a `StorageResult` with the document of the profile.

```text
StorageRequest ─► StoragePlan ─► loads ─► processes: tools.storage_load ─► mover: pread, io_uring
                                                │
        store ◄─ profile ◄─ caps ◄─ Measured ◄──┘
```

Start with job.py, then settings.py. The guide is docs/guide/storage.md.
"""
