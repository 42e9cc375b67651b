import { Page } from '../../frame/page.tsx';

export function FactoriesScreen() {
  return <Page title="FactoriesScreen">{null}</Page>;
}
