"""How long a transfer will take, how sure that is, and what to reserve so that a deadline holds.

What it does: learns from every transfer of a path that has ended, and says of the next one how fast
it will be, with intervals that hold as often as they say: half of the transfers, 8 in 10, 19 in 20.
A path without any history is estimated from paths like it, and without those from a published
model: the answer says which, how old its knowledge is, and is wide where little is known.

What it must not do: read a clock, a file or a store; start, choose or change a transfer; print.
numpy is all it imports.

In: a `Workload` (bytes, files, settings, path) and `PastTransfer` rows of the store, oldest first.
Out: a `TransferEstimate`, which also is the document of `farline estimate --json`.

```python
estimate = estimate_transfer(Question(workload, now_s), rows, path_ends)
estimate.interval(0.8).duration_low_s
```

The method is described and measured in docs/design/estimating.md. It is one model from an empty to
a full history: a log-linear prior (`features`), a weighted ridge regression of what the path's own
transfers left of it (`local_ridge`), the load of the last hour and the widening of idle days
(`path_estimator`), and conformal calibration with the scores of earlier estimates (`calibration`).

Start with `estimate.estimate_transfer`, then `path_estimator.PathEstimator`. What a running copy
has left is another question: `farline.models.copy_eta`. What a campaign has left:
`farline.campaign.estimate`.
"""

from __future__ import annotations

from farline.estimating.estimate import (
    PathHistory,
    Question,
    TransferEstimate,
    estimate_transfer,
)
from farline.estimating.finished import Finished
from farline.estimating.path_estimator import PathEstimator, Prediction
from farline.estimating.workload import Workload

__all__ = [
    "Finished",
    "PathEstimator",
    "PathHistory",
    "Prediction",
    "Question",
    "TransferEstimate",
    "Workload",
    "estimate_transfer",
]
