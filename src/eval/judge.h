/* The judge: makes inputs, poisons outputs, knows the expected values, compares. A process of its
 * own that no candidate ever shares an address space or a context with.
 *
 * A case is one (shape, data) of the run's task with one seed: memory with the tensors in it, each
 * between canaries, a private copy of the inputs, and the references. Cases are kept and used for
 * every candidate, within a ceiling; before each run the outputs get a fresh random poison, after
 * it canaries, inputs, poison and values are looked at, in this order. */
#ifndef EVAL_JUDGE_H
#define EVAL_JUDGE_H

/* Socket on ROLE_FD. */
int judge_main(unsigned threads);

#endif
