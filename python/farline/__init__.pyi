"""The public names of farline, for type checkers: `__init__.py` imports them when they are used."""

from farline.api.campaign import Campaign as Campaign
from farline.api.campaign import profile as profile
from farline.api.contention import Contention as Contention
from farline.api.contention import contend as contend
from farline.api.copy import Copy as Copy
from farline.api.copy import PartialCopy as PartialCopy
from farline.api.copy import copy as copy
from farline.api.estimate import Estimate as Estimate
from farline.api.estimate import estimate as estimate
from farline.api.folder import Folder as Folder
from farline.api.folder import open_folder as open_folder
from farline.api.measurements import explain as explain
from farline.api.measurements import ingest as ingest
from farline.api.measurements import report as report
from farline.api.measurements import throughput_profile as throughput_profile
from farline.api.run import Run as Run
from farline.api.run import probe as probe
from farline.api.serving import Server as Server
from farline.api.serving import serve as serve
from farline.api.storage import StorageMeasurement as StorageMeasurement
from farline.api.storage import measure_storage as measure_storage
from farline.api.stores import open_store as open_store
from farline.api.testbeds import testbed as testbed
from farline.api.tuning import Tune as Tune
from farline.api.tuning import tune as tune
from farline.errors import FarlineError as FarlineError
from farline.profiles.throughput_profile import ThroughputProfile as ThroughputProfile
from farline.store import Store as Store

__all__ = [
    "Campaign",
    "Contention",
    "Copy",
    "Estimate",
    "FarlineError",
    "Folder",
    "PartialCopy",
    "Run",
    "Server",
    "StorageMeasurement",
    "Store",
    "ThroughputProfile",
    "Tune",
    "contend",
    "copy",
    "estimate",
    "explain",
    "ingest",
    "measure_storage",
    "open_folder",
    "open_store",
    "probe",
    "profile",
    "report",
    "serve",
    "testbed",
    "throughput_profile",
    "tune",
]
