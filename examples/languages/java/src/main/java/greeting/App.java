package greeting;

import com.pulumi.Pulumi;
import com.pulumi.core.Output;
import com.pulumi.resources.Stash;
import com.pulumi.resources.StashArgs;

public class App {
    public static void main(String[] args) {
        Pulumi.run(ctx -> {
            var config = ctx.config();
            Output<Object> password = config.requireSecret("password").applyValue(value -> value);
            var kept = new Stash("kept", StashArgs.builder().input(password).build());

            ctx.export("greeting", Output.of("Hello, " + config.require("who") + "!"));
            ctx.export("times", Output.of(config.requireInteger("times")));
            ctx.export("password", kept.output());
        });
    }
}
