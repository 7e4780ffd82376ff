/* SPDX-License-Identifier: BSD-2-Clause */
/* weir.h - all of libweir's public API. */
#ifndef WEIR_H
#define WEIR_H

#include <weir/record.h>
#include <weir/event.h>
#include <weir/fence.h>
#include <weir/lanes.h>
#include <weir/ledger.h>
#include <weir/stream.h>
#include <weir/decode.h>
#include <weir/perf.h>

#endif /* WEIR_H */
