/** From rows before and after a write to the events that tell of it. Pure. */
import type { Changes } from '../events/index.ts'
import { changesBetween, type Image } from './image-changes.ts'

export interface StorageEvent {
  readonly type: string
  readonly aggregate: { readonly type: string; readonly id: string }
  readonly payload: Image
  readonly changes?: Changes
  readonly previous?: Image
}

export interface StorageShape {
  readonly entity: string
  readonly idOf: (row: unknown) => string | number
  readonly image: (row: unknown) => Image
}

export function createdEvent(shape: StorageShape, row: unknown): StorageEvent {
  return { ...about(shape, 'created', row), payload: shape.image(row) }
}

/** A row that was not there before was created; one that did not change is no event. */
export function updatedEvents(shape: StorageShape, before: unknown, after: unknown): StorageEvent[] {
  if (!isRow(after)) return []
  if (!isRow(before)) return [createdEvent(shape, after)]
  const [previous, payload] = [shape.image(before), shape.image(after)]
  const changes = changesBetween(previous, payload)
  return changes === undefined ? [] : [{ ...about(shape, 'updated', after), payload, changes, previous }]
}

/** The payload is the last image too, so that one schema and one filter fit all three kinds. */
export function deletedEvents(shape: StorageShape, before: unknown): StorageEvent[] {
  if (!isRow(before)) return []
  const previous = shape.image(before)
  return [{ ...about(shape, 'deleted', before), payload: previous, previous }]
}

function about({ entity, idOf }: StorageShape, kind: 'created' | 'updated' | 'deleted', row: unknown) {
  return { type: `${entity}.${kind}`, aggregate: { type: entity, id: String(idOf(row)) } }
}

export function isRow(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
