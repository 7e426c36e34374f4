export type { BackfillOptions, BackfillReport } from './backfill.ts'
export { type Capture, type CaptureStage, createCapture } from './capture.ts'
export {
  type CaptureOptions,
  type DeclaredTable,
  type DeclaredTables,
  type WithCaptured,
  withCapturedEvents,
} from './declared.ts'
export type { ImportedPart, ImportOptions, ImportReport } from './import.ts'
export type { CaptureStep, PendingCapture } from './reconcile.ts'
export type { CapturedTable } from './statements.ts'
