/**
 * State kept from events: one JSON value per id, folded by a pure function and stored in the transaction that moves the
 * checkpoint. The stage promises that after any crash the states are exactly the fold of the events below the checkpoint,
 * per id in the order of the log. It relies on transactional subscriptions.
 *
 * Start with projection.ts (what users write), then fold.ts, which decides and touches nothing.
 */
export type { ProjectionOptions } from './projection.ts'
export {
  createProjections,
  type ProjectionHandle,
  type ProjectionState,
  type Projections,
  type ProjectionsPart,
} from './projections.ts'
