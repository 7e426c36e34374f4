/** An explanation as JSON. Keys of ours are snake_case; those of payloads, headers and what would be sent stay. */

import { toEventJson, toPlain } from '../events/index.ts'
import type { DeadLetter } from '../index.ts'
import type { EventExplanation, ExplainedAction, ExplainedObserver } from '../observers/index.ts'

export function toExplanationJson({ event, checkpoint, letter, observers }: EventExplanation, reveal: boolean): object {
  return {
    event: toEventJson(event, { reveal }),
    checkpoint: checkpoint === null ? null : String(checkpoint),
    letter: letter && toLetterJson(letter),
    observers: observers.map(toObserverJson),
  }
}

function toObserverJson({ parts, actions, ...one }: ExplainedObserver): object {
  return {
    ...(toPlain(one) as object),
    parts,
    actions: actions.map(toActionJson),
  }
}

function toActionJson({ name, type, state, start, attempts, delivery, letter, preview }: ExplainedAction): object {
  return {
    name,
    type,
    state,
    start: start === null ? null : String(start),
    attempts: attempts.map(({ request, response, ...attempt }) => ({
      ...(toPlain(attempt) as object),
      request,
      response,
    })),
    delivery: toPlain(delivery),
    letter: letter && toLetterJson(letter),
    preview: preview && toPreviewJson(preview),
  }
}

function toPreviewJson(preview: NonNullable<ExplainedAction['preview']>): object {
  if ('error' in preview) return preview
  const { actionType, ...rest } = preview
  return { action_type: actionType, ...rest }
}

/** Without its copy of the event, which is above. */
function toLetterJson({ event: _, ...letter }: DeadLetter): object {
  return toPlain(letter) as object
}
