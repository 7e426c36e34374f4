export { type Capture, type CaptureStage, createCapture } from './capture.ts'
export { type CaptureOptions, type DeclaredTable, type DeclaredTables, withCapturedEvents } from './declared.ts'
export type { CaptureStep, PendingCapture } from './reconcile.ts'
export type { CapturedTable } from './statements.ts'
