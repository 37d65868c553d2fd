"""Trains a super-resolution network on made-up images while a policy moves batch and patch size.

    python3 python/example_training.py --profile settled --start 12 128 --limit 12884901888 --iterations 500

The network: 6 residual-in-residual dense blocks of 64 channels, ×2, single precision, mean absolute error, Adam.
That is the workload of models/superres-rrdb6.json, so the same run can be simulated:
vramlab run scenarios/ratchet.json --policy settled. Writes one JSON object with a row an iteration.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional

from vramlab_policy import VramPolicy


class DenseBlock(nn.Module):
    def __init__(self, channels=64, growth=32):
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels + i * growth, growth if i < 4 else channels, 3, padding=1) for i in range(5))

    def forward(self, x):
        features = x
        outputs = [x]
        for convolution in self.convolutions[:4]:
            outputs.append(functional.leaky_relu(convolution(features), 0.2))
            features = torch.cat(outputs, 1)
        return self.convolutions[4](features) * 0.2 + x


class ResidualBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(DenseBlock(), DenseBlock(), DenseBlock())

    def forward(self, x):
        return self.blocks(x) * 0.2 + x


class SuperResolution(nn.Module):
    def __init__(self, blocks=6):
        super().__init__()
        self.first = nn.Conv2d(3, 64, 3, padding=1)
        self.body = nn.Sequential(*(ResidualBlock() for _ in range(blocks)))
        self.trunk = nn.Conv2d(64, 64, 3, padding=1)
        self.upsample = nn.Conv2d(64, 64, 3, padding=1)
        self.last = nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, x):
        features = self.first(x)
        features = features + self.trunk(self.body(features))
        features = functional.interpolate(features, scale_factor=2, mode="nearest")
        return self.last(functional.leaky_relu(self.upsample(features), 0.2))


def train_step(network, optimizer, batch, lq):
    image = torch.rand(batch, 3, lq, lq, device="cuda")
    target = torch.rand(batch, 3, 2 * lq, 2 * lq, device="cuda")
    loss = functional.l1_loss(network(image), target)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()


def run(arguments):
    total = torch.cuda.get_device_properties(0).total_memory
    if arguments.limit:
        torch.cuda.set_per_process_memory_fraction(arguments.limit / total)
    torch.manual_seed(arguments.seed)
    network = SuperResolution().cuda()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)

    policy = VramPolicy(profile=arguments.profile, adjustment_frequency=arguments.frequency,
                        total_bytes=arguments.limit or total)
    batch, lq = arguments.start
    policy.set_current_parameters(batch, lq)
    policy.start_monitoring_period()
    rows = []
    for iteration in range(1, arguments.iterations + 1):
        began = time.monotonic()
        row = {"i": iteration, "batch": batch, "lq": lq, "oom": False}
        try:
            train_step(network, optimizer, batch, lq)
        except torch.cuda.OutOfMemoryError:
            row["oom"] = True
            optimizer.zero_grad(set_to_none=True)
        stats = torch.cuda.memory_stats()
        row.update(allocated=stats["allocated_bytes.all.current"], peak_allocated=stats["allocated_bytes.all.peak"],
                   reserved=stats["reserved_bytes.all.current"], peak_reserved=stats["reserved_bytes.all.peak"],
                   retries=stats["num_alloc_retries"], ooms=stats["num_ooms"],
                   ms=round((time.monotonic() - began) * 1000, 2))
        if row["oom"]:
            new_batch, new_lq = policy.handle_oom_recovery()
        else:
            change = policy.update_vram_monitoring()
            new_batch, new_lq = batch + (change[0] or 0), lq + (change[1] or 0)
            policy.set_current_parameters(new_batch, new_lq)
        row.update(db=new_batch - batch, dl=new_lq - lq)
        rows.append(row)
        batch, lq = new_batch, new_lq
    return {"profile": arguments.profile, "frequency": arguments.frequency, "torch": torch.__version__,
            "device": torch.cuda.get_device_name(), "total_memory": total, "cap_bytes": arguments.limit, "rows": rows,
            "adjustments": policy.adjustments, "stats": policy.get_vram_stats()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="settled")
    parser.add_argument("--frequency", type=int, default=10)
    parser.add_argument("--start", type=int, nargs=2, default=(12, 128), metavar=("BATCH", "LQ"))
    parser.add_argument("--limit", type=int, default=0, help="bytes the process may use (default: the whole card)")
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default="-", help="file to write, - = standard output")
    arguments = parser.parse_args()
    text = json.dumps(run(arguments))
    if arguments.output == "-":
        print(text)
    else:
        with open(arguments.output, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
