// The conformance suite on the host's device and on simulated ones, whose bodies run by themselves or enqueue.
#include "tests/device/rigs.h"

#define ENQUEUING_DEVICE EnqueuingThreadsRig, EnqueuingAdversaryRig
#define LIMITED_DEVICE CpuRig, ThreadedRig, VirtualRig, AdversarialRig, ENQUEUING_DEVICE
#define EVERY_DEVICE LIMITED_DEVICE

#include "tests/device/conformance.h"
