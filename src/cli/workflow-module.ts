/** The code of workflows, for commands that look at stored histories with it. Nothing of it runs: no instance is started. */
import { AftercommitError } from '../errors.ts'
import type { Aftercommit, Workflow, Workflows } from '../index.ts'
import { importModule } from './observer-file.ts'

export const WORKFLOWS_FLAGS = '--import <module>'
export const WORKFLOWS_HELP = 'a module whose default export is given `ac`, to register workflows'

export interface WorkflowModule {
  readonly types: readonly string[]
  /** What the module registered under this type. */
  get(type: string): Workflow
}

export async function importWorkflows(module: string, ac: Aftercommit): Promise<WorkflowModule> {
  const registered = new Map<string, Workflow>()
  const register: Workflows['register'] = (workflow, options) => {
    ac.workflows.register(workflow, options)
    registered.set(workflow.type, workflow as unknown as Workflow)
  }
  const watched: Aftercommit = Object.create(ac, { workflows: { value: { ...ac.workflows, register } } })
  await importModule(module, watched)
  return {
    types: [...registered.keys()],
    get(type) {
      const workflow = registered.get(type)
      if (workflow) return workflow
      throw new AftercommitError(
        'UNKNOWN_WORKFLOW',
        `${module} registers no workflow of type "${type}", so its histories cannot be read. Name the module that does.`,
      )
    },
  }
}
