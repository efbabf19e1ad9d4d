// The conformance suite on the host's device, on simulated ones, and on one whose bodies enqueue.
#include "tests/device/rigs.h"

#define LIMITED_DEVICE CpuRig, ThreadedRig, VirtualRig, AdversarialRig
#define EVERY_DEVICE LIMITED_DEVICE, EnqueuingRig

#include "tests/device/conformance.h"
