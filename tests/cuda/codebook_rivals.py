#!/usr/bin/env python3
"""Other people's k-means on the same GPU, from the same first anchors: rows of gpu_bench's table `codebook`.

usage: codebook_rivals.py OURS_MS

Vectors are those of the published fits. Each rival does 31 iterations and stops for nothing. Its time is from a call
until the device is done, without reading the result; the first calls compile and are not counted.
"""
import sys
import time

COUNT, DIMENSIONS, ANCHORS, ITERATIONS = 10_000, 128, 256, 31
CALLS, FIRST_CALLS = 50, 5


def vectors_of(torch):
    """Three centers and a sine along all numbers, as test.vectors gives them (but for its last bits)."""
    places = torch.arange(COUNT * DIMENSIONS, dtype=torch.float64).reshape(COUNT, DIMENSIONS)
    centers = (torch.arange(COUNT) % 3).double()[:, None] * 5
    return (centers + 0.5 * torch.sin(places * 0.1)).half().cuda()


def first_anchors(vectors):
    """Farthest first."""
    chosen, nearest = [0], None
    for _ in range(ANCHORS):
        distances = ((vectors.float() - vectors[chosen[-1]].float()) ** 2).sum(1)
        nearest = distances if nearest is None else nearest.minimum(distances)
        chosen.append(int(nearest.argmax()))
    return vectors[chosen[:ANCHORS]].clone()


def row(torch, name, call, ours):
    for _ in range(FIRST_CALLS):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    times.sort()
    median = times[len(times) // 2]
    print(f"| {name} | {median:.3f} / {times[len(times) * 99 // 100]:.3f} | {median / ours:.1f} |", flush=True)


def captured(torch, vectors, anchors):
    """A product, argmin and index_add_, 31 times in one graph."""
    numbers = vectors.float()
    first, book = anchors.float(), anchors.float().clone()
    ones = torch.ones(COUNT, device="cuda")

    def iterate():
        book.copy_(first)
        for _ in range(ITERATIONS):
            labels = ((book ** 2).sum(1) - 2 * numbers @ book.T).argmin(1)
            sums = torch.zeros_like(book).index_add_(0, labels, numbers)
            counts = torch.zeros(ANCHORS, device="cuda").index_add_(0, labels, ones)
            book.copy_(torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], book))

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        iterate()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        iterate()
    return graph.replay


def main():
    ours = float(sys.argv[1])
    try:
        import torch
    except ImportError as missing:
        print(f"| left out: {missing} | | |")
        return
    vectors = vectors_of(torch)
    anchors = first_anchors(vectors)
    row(torch, "torch, captured: product, argmin, index_add_", captured(torch, vectors, anchors), ours)
    try:
        from flash_kmeans import batch_kmeans_Euclid
    except ImportError as missing:
        print(f"| left out: {missing} | | |")
        return
    for name, numbers in (("flash-kmeans, half precision", vectors), ("flash-kmeans, single precision", vectors.float())):
        row(torch, name, lambda: batch_kmeans_Euclid(numbers[None], ANCHORS, max_iters=ITERATIONS, tol=0.0,
                                                     init_centroids=anchors.to(numbers.dtype)[None].clone()), ours)


main()
