/** The key of a Secret with a part of a sealed plan. */
export const planKey = "plan";
