import { collectFaults, type DefinitionFault, type Position } from '@runyard/contract/factories/files/faults';
import type { FactoryDefinition } from '@runyard/definitions/definition';

/** A definition without faults in its files, and the place of each member in them. */
export interface LocatedDefinition {
  readonly definition: FactoryDefinition;
  readonly locate: (file: string, path: readonly (string | number)[]) => Position;
}

/** Collects faults that only the service finds. */
export interface FaultList {
  add(file: string, path: readonly (string | number)[], message: string): void;
  count(): number;
  list(): DefinitionFault[];
}

export function makeFaultList({ locate }: LocatedDefinition): FaultList {
  const faults = collectFaults();
  return {
    add: (file, path, message) => faults.add(file, locate(file, path), message),
    count: faults.count,
    list: faults.list,
  };
}
