/* SPDX-License-Identifier: BSD-2-Clause */
/* ordinary.h - loads that run beside a reader which is not an ordinary task. */
#ifndef WEIR_MEASURE_ORDINARY_H
#define WEIR_MEASURE_ORDINARY_H

/* The calling thread is an ordinary task again: what it inherited from its maker is gone. */
void ordinary__be(void);

#endif /* WEIR_MEASURE_ORDINARY_H */
