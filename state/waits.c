// SPDX-License-Identifier: BSD-2-Clause
/*
 * waits.c - owns the chains that are not settled. Promises that the sum of all waits is that of the
 * kernel's totals, whatever was lost, and that a wait stands in a histogram only if it was one.
 */
#include "state/waits.h"

#include <string.h>

#define FIRST_ROOM 256
#define DELAY_MASK ((UINT64_C(1) << WEIR_LEAN_DELAY_BITS) - 1)
/* More than half of all that fits: the totals ran backwards. */
#define BACKWARDS  (UINT64_C(1) << (WEIR_LEAN_DELAY_BITS - 1))

void waits__init(struct waits *waits, struct runners *runners)
{
	*waits = (struct waits){.budget = &runners->budget, .pool = &runners->pool};
}

void waits__free(struct waits *waits)
{
	budget__free(waits->budget, waits->chains);
}

static struct chain *chain_at(const struct waits *waits, uint32_t index)
{
	return index ? &waits->chains[index - 1] : NULL;
}

static void count_wait(struct waits *waits, struct runner *runner, struct account *on, uint64_t ns)
{
	account__wait(&runner->account, waits->pool, ns);
	if (on)
		account__wait(on, waits->pool, ns);
}

static void count_unknown(struct runner *runner, struct account *on, uint64_t ns)
{
	runner->account.total.wait_ns += ns;
	runner->account.total.waits_unknown++;
	if (on) {
		on->total.wait_ns += ns;
		on->total.waits_unknown++;
	}
}

static void count_moves(struct runner *runner, struct account *on, uint32_t moves)
{
	runner->account.total.migrations += moves;
	if (on)
		on->total.migrations += moves;
}

static bool make_room(struct waits *waits)
{
	uint32_t room = waits->room ? 2 * waits->room : FIRST_ROOM;
	struct chain *chains;

	if (waits->count < waits->room)
		return true;
	chains = budget__alloc(waits->budget, room * sizeof(*chains));
	if (!chains)
		return false;
	if (waits->count)
		memcpy(chains, waits->chains, waits->count * sizeof(*chains));
	budget__free(waits->budget, waits->chains);
	waits->chains = chains;
	waits->room = room;
	return true;
}

/* By time: behind the one that was put there last, as a rule, since a CPU tells in order. */
static void link_chain(struct waits *waits, struct runner *runner, uint32_t index)
{
	struct chain *chain = chain_at(waits, index), *last = chain_at(waits, runner->chain);
	uint32_t *at = &runner->chains;

	if (last && last->first_ns <= chain->first_ns)
		at = &last->next;
	while (*at && chain_at(waits, *at)->first_ns <= chain->first_ns)
		at = &chain_at(waits, *at)->next;
	chain->next = *at;
	*at = index;
	runner->chain = index;
}

void waits__left(struct waits *waits, struct runner *runner, uint32_t cpu, struct account *on,
		 uint32_t losses, uint64_t stamp_ns, uint64_t totals)
{
	struct chain *chain = chain_at(waits, runner->chain);

	if (chain && chain->cpu == cpu && chain->losses == losses &&
	    !weir_lean__migrations(totals, chain->last)) {
		count_wait(waits, runner, on, weir_lean__delay_ns(totals, chain->last));
		chain->last_ns = stamp_ns;
		chain->last = totals;
		return;
	}
	if (!make_room(waits)) {
		waits__unknown(runner);
		return;
	}
	waits->chains[waits->count++] = (struct chain){
		.runner = runner,
		.first_ns = stamp_ns,
		.last_ns = stamp_ns,
		.first = totals,
		.last = totals,
		.losses = losses,
		.cpu = cpu,
	};
	link_chain(waits, runner, waits->count);
}

void waits__unknown(struct runner *runner)
{
	runner->account.total.waits_unknown++;
	runner->flags &= (uint16_t)~RUNNER_HAS_TOTALS;
}

void waits__lost(struct waits *waits, uint64_t from_ns, uint64_t to_ns)
{
	if (!waits->new_to_ns || from_ns < waits->new_from_ns)
		waits->new_from_ns = from_ns;
	if (to_ns > waits->new_to_ns)
		waits->new_to_ns = to_ns;
}

bool waits__is_hidden(const struct waits *waits, uint64_t from_ns, uint64_t to_ns)
{
	return waits->lost_ns > from_ns ||
	       (waits->new_to_ns > from_ns && waits->new_from_ns < to_ns);
}

/* What lies between the last switch away that is settled and the first of this chain. */
static void settle_chain(struct waits *waits, struct runner *runner, const struct chain *chain,
			 struct account *on)
{
	uint64_t ns = weir_lean__delay_ns(chain->first, runner->totals);
	bool known = runner->flags & RUNNER_HAS_TOTALS;

	/* Another task's, which had this name before: see waits__rename(). */
	if (known && chain->first_ns < runner->totals_ns)
		return;
	if (!known || (ns & DELAY_MASK) >= BACKWARDS) {
		count_unknown(runner, on, 0);
	} else {
		count_moves(runner, on, weir_lean__migrations(chain->first, runner->totals));
		if (waits__is_hidden(waits, runner->totals_ns, chain->first_ns))
			count_unknown(runner, on, ns);
		else
			count_wait(waits, runner, on, ns);
	}
	runner->totals = chain->last;
	runner->totals_ns = chain->last_ns;
	runner->flags |= RUNNER_HAS_TOTALS;
}

/* Those that begin at or before the watermark; the others stay as they are. */
static void settle_runner(struct waits *waits, struct runner *runner, uint64_t watermark_ns,
			  struct account *(*account_of)(void *ctx, uint32_t cpu), void *ctx)
{
	struct chain *chain;

	while ((chain = chain_at(waits, runner->chains)) && chain->first_ns <= watermark_ns) {
		settle_chain(waits, runner, chain, account_of ? account_of(ctx, chain->cpu) : NULL);
		runner->chains = chain->next;
		chain->runner = NULL;
	}
	runner->chain = 0;
}

/* What is not settled begins the next round's chains. */
static void keep_rest(struct waits *waits, uint32_t count)
{
	waits->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct chain chain = waits->chains[i];

		if (!chain.runner)
			continue;
		if (chain.runner->chain == 0)
			chain.runner->chains = 0;
		chain.next = 0;
		waits->chains[waits->count++] = chain;
		link_chain(waits, chain.runner, waits->count);
	}
}

void waits__settle(struct waits *waits, uint64_t watermark_ns,
		   struct account *(*account_of)(void *ctx, uint32_t cpu), void *ctx)
{
	uint32_t count = waits->count;

	for (uint32_t i = 0; i < count; i++)
		if (waits->chains[i].runner)
			settle_runner(waits, waits->chains[i].runner, watermark_ns, account_of,
				      ctx);
	keep_rest(waits, count);
	if (waits->new_to_ns > waits->lost_ns)
		waits->lost_ns = waits->new_to_ns;
	waits->new_to_ns = 0;
}

void waits__rename(struct waits *waits, struct runner *from, struct runner *to)
{
	settle_runner(waits, to, UINT64_MAX, NULL, NULL);
	settle_runner(waits, from, UINT64_MAX, NULL, NULL);
	to->totals = from->totals;
	to->totals_ns = from->totals_ns;
	to->flags &= (uint16_t)~RUNNER_HAS_TOTALS;
	to->flags |= from->flags & RUNNER_HAS_TOTALS;
}
