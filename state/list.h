/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - a doubly linked list whose nodes live in their owners.
 *
 * An entry takes itself off in O(1) without knowing which list it is on: a task is on one of two
 * (it runs, or it has exited), and leaves either at any time.
 */
#ifndef WEIR_STATE_LIST_H
#define WEIR_STATE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
	struct list_node *next, *prev;
};

#define list__entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void list__init(struct list_node *head)
{
	head->next = head->prev = head;
}

static inline bool list__empty(const struct list_node *head)
{
	return head->next == head;
}

static inline void list__add_tail(struct list_node *head, struct list_node *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list__del(struct list_node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list__init(node);
}

#endif /* WEIR_STATE_LIST_H */
